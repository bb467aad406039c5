//! What the attribute becomes, written out, and a proof that nothing in it depends on what a user's module has in scope.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

fn expanded(arguments: TokenStream, item: TokenStream) -> TokenStream {
    crate::expand::idempotent(arguments, item)
}

fn pretty(tokens: TokenStream) -> String {
    let file = syn::parse2(tokens).expect("an expansion is a list of items");
    prettyplease::unparse(&file)
}

macro_rules! golden {
    ($name:ident: ($($arguments:tt)*) { $($item:tt)* }) => {
        #[test]
        fn $name() {
            let tokens = expanded(quote!($($arguments)*), quote!($($item)*));
            insta::assert_snapshot!(stringify!($name), pretty(tokens));
        }
    };
}

golden! { plain: (method = "message/send", scope = user.tenant) {
    /// Sends a message.
    pub async fn send_message(
        user: AuthUser,
        State(agent): State<Agent>,
        Params(send): Params<SendMessage>,
    ) -> Result<Task, RpcError> {
        agent.answer(send).await
    }
} }

golden! { without_arguments: (method = "SendStreamingMessage") {
    async fn stream_message() -> RpcStream<impl Stream<Item = Event>> {
        events()
    }
} }

golden! { with_every_option: (
    method = "billing/charge",
    scope = format!("{}/{name}", tenant),
    key = "/order/id",
    extension = "https://example.com/billing/v1",
    on_takeover = "refuse",
    state = App,
    crate = my_agent::retry,
) {
    #[cfg(feature = "billing")]
    #[tracing::instrument(skip_all)]
    pub(crate) async fn charge(AuthUser { tenant, mut name, .. }: AuthUser, _: HeaderMap, order: Params<Order>) -> Answer {
        pay(tenant, name, order)
    }
} }

golden! { generic: (method = "message/send") {
    async fn send_message<D: Database, const N: usize>(database: Extension<D>, body: Json<[u8; N]>) -> Answer
    where
        D: Clone,
    {
        database.store(body).await
    }
} }

golden! { mistaken: (methud = "message/send", scope = user.tenant) {
    pub fn send_message(user: &AuthUser) -> Task {
        user.answer()
    }
} }

golden! { a_method_of_an_impl: (method = "message/send") {
    async fn send_message(&self) -> Task {
        self.task()
    }
} }

/// Names that a module may shadow or lack: all of the prelude, and every crate but by an absolute path.
const BANNED: [&str; 34] = [
    "std",
    "core",
    "alloc",
    "axum",
    "http",
    "tokio",
    "idempotent",
    "Result",
    "Option",
    "Some",
    "None",
    "Ok",
    "Err",
    "Send",
    "Sync",
    "Clone",
    "Copy",
    "Drop",
    "Fn",
    "FnMut",
    "FnOnce",
    "Box",
    "String",
    "Vec",
    "Into",
    "From",
    "Iterator",
    "Default",
    "Future",
    "IntoFuture",
    "AsRef",
    "ToString",
    "ToOwned",
    "drop",
];

/// Calls `visit` with each identifier and whether a `::` stands before it.
fn identifiers(tokens: TokenStream, visit: &mut impl FnMut(String, bool)) {
    let mut colons = 0;
    for token in tokens {
        let behind_path_separator = colons >= 2;
        colons = match &token {
            TokenTree::Punct(colon) if colon.as_char() == ':' => colons + 1,
            _ => 0,
        };
        match token {
            TokenTree::Ident(name) => visit(name.to_string(), behind_path_separator),
            TokenTree::Group(group) => identifiers(group.stream(), visit),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

#[test]
fn an_expansion_names_nothing_that_a_module_can_shadow() {
    // The user's own tokens name nothing that is banned, so whatever is found is the macro's.
    let handler = quote! {
        async fn send_message<D: Database>(user: AuthUser, database: Extension<D>, send: Params<SendMessage>) -> Answer {
            answer(user, database, send)
        }
    };
    for arguments in [
        quote!(method = "message/send"),
        quote!(method = "message/send", scope = user.tenant, state = App, on_takeover = "refuse"),
        quote!(method = "a/b", extension = "https://example.com/v1", key = "/id", crate = my::path),
        quote!(method = "nonsense"),
    ] {
        let mut banned = Vec::new();
        identifiers(expanded(arguments, handler.clone()), &mut |name, qualified| {
            if BANNED.contains(&name.as_str()) && !qualified {
                banned.push(name);
            }
        });
        assert!(banned.is_empty(), "{banned:?}");
    }
}

#[test]
fn an_unqualified_name_would_be_found() {
    let mut found = Vec::new();
    identifiers(
        quote!(
            fn f() -> Option<::core::option::Option<x::Ok>> {}
        ),
        &mut |name, qualified| {
            found.push((name, qualified));
        },
    );
    assert!(found.contains(&("Option".to_owned(), false)));
    assert!(found.contains(&("core".to_owned(), true)));
    assert!(found.contains(&("Ok".to_owned(), true)));
}

#[test]
fn one_mistake_is_one_error() {
    for (arguments, item) in [
        (
            quote!(),
            quote!(
                async fn send() -> Answer {
                    answer()
                }
            ),
        ),
        (
            quote!(methud = "message/send"),
            quote!(
                async fn send() -> Answer {
                    answer()
                }
            ),
        ),
        (
            quote!("message/send"),
            quote!(
                async fn send() -> Answer {
                    answer()
                }
            ),
        ),
        (
            quote!(method = "message/send", state = App => B),
            quote!(
                async fn send() -> Answer {
                    answer()
                }
            ),
        ),
        (
            quote!(method = "message/send", scope = user.),
            quote!(
                async fn send() -> Answer {
                    answer()
                }
            ),
        ),
        (
            quote!(method = "message/send"),
            quote!(
                fn send() -> Answer {
                    answer()
                }
            ),
        ),
        (
            quote!(method = "message/send"),
            quote!(
                struct Send;
            ),
        ),
    ] {
        let mut errors = 0;
        identifiers(expanded(arguments.clone(), item), &mut |name, _| errors += usize::from(name == "compile_error"));
        assert_eq!(errors, 1, "{arguments}");
    }
}
