//! A handler's arguments: what each reads of the request, and which names it binds.

use proc_macro2::Ident;
use syn::visit::Visit;
use syn::{Attribute, FnArg, GenericArgument, Pat, PatIdent, Path, PathArguments, Signature, Type};

use super::Mistakes;
use super::signature::display;

/// What an argument's extractor reads, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Only what stands in front of the body: it runs before the claim, and its refusal is never stored.
    Headers,
    /// The body: a well-known extractor in last place. It runs after the claim.
    Body,
    /// The last argument, of a type that nothing is known about but what the compiler will know: headers or the body.
    Unknown,
}

/// One argument.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Attributes on it.
    pub attributes: Vec<Attribute>,
    /// Its pattern: `State(agent)`.
    pub pattern: Pat,
    /// Its type: `State<Agent>`.
    pub ty: Type,
    /// What it reads.
    pub reads: Reads,
    /// The names that its pattern binds.
    pub names: Vec<Ident>,
}

/// Extractors that take the body, by the last part of their path.
const BODY_READERS: [&str; 12] = [
    "Params",
    "Json",
    "Bytes",
    "BytesMut",
    "String",
    "Form",
    "RawForm",
    "Multipart",
    "Body",
    "Request",
    "Protobuf",
    "JsonLines",
];

/// Where those extractors live; `my::Params` is somebody else's.
const BODY_READER_HOMES: [&str; 14] = [
    "axum",
    "axum_core",
    "axum_extra",
    "http",
    "hyper",
    "bytes",
    "idempotent",
    "extract",
    "body",
    "std",
    "alloc",
    "string",
    "multipart",
    "rpc",
];

/// Reads the arguments and refuses a body that would be read twice.
pub(super) fn read(signature: &Signature, mistakes: &mut Mistakes) -> Vec<Argument> {
    let typed: Vec<_> = signature
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(argument) => Some(argument),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let count = typed.len();
    let mut arguments = Vec::with_capacity(count);
    for (index, argument) in typed.into_iter().enumerate() {
        let last = index + 1 == count;
        if !last && reads_body(&argument.ty) {
            mistakes.about(&argument.ty, read_twice(argument, signature.inputs.last()));
        }
        let mut names = Names::default();
        names.visit_pat(&argument.pat);
        arguments.push(Argument {
            attributes: argument.attrs.clone(),
            pattern: (*argument.pat).clone(),
            ty: (*argument.ty).clone(),
            reads: match last {
                false => Reads::Headers,
                true if reads_body(&argument.ty) => Reads::Body,
                true => Reads::Unknown,
            },
            names: names.0,
        });
    }
    arguments
}

fn read_twice(argument: &syn::PatType, last: Option<&FnArg>) -> String {
    let ty = display(&argument.ty);
    match last {
        Some(FnArg::Typed(last)) if reads_body(&last.ty) => format!(
            "`{ty}` and `{}` both read the body, which can be read once; keep one of them, as the last argument",
            display(&last.ty)
        ),
        _ => format!("`{ty}` reads the body, so it must be the last argument"),
    }
}

/// Whether a type is one of the well-known extractors that take the body, possibly in an `Option` or a `Result`.
pub(super) fn reads_body(ty: &Type) -> bool {
    let Type::Path(path) = ty else {
        return matches!(ty, Type::Paren(inner) if reads_body(&inner.elem))
            || matches!(ty, Type::Group(inner) if reads_body(&inner.elem));
    };
    let Some(last) = path.path.segments.last() else {
        return false;
    };
    if last.ident == "Option" || last.ident == "Result" {
        return first_argument(&last.arguments).is_some_and(reads_body);
    }
    BODY_READERS.iter().any(|known| last.ident == known) && at_home(&path.path)
}

fn at_home(path: &Path) -> bool {
    let parents = path.segments.len() - 1;
    path.segments.iter().take(parents).all(|parent| BODY_READER_HOMES.iter().any(|home| parent.ident == home))
}

fn first_argument(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// Collects what a pattern binds.
#[derive(Default)]
pub(super) struct Names(pub(super) Vec<Ident>);

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.0.push(pattern.ident.clone());
        syn::visit::visit_pat_ident(self, pattern);
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn body_readers_are_known_by_name_and_home() {
        for reader in [
            parse_quote!(Params<SendMessage>),
            parse_quote!(axum::Json<SendMessage>),
            parse_quote!(idempotent::rpc::Params<SendMessage>),
            parse_quote!(Option<Json<SendMessage>>),
            parse_quote!(Result<Json<SendMessage>, JsonRejection>),
            parse_quote!(String),
        ] {
            let reader: Type = reader;
            assert!(reads_body(&reader), "{}", display(&reader));
        }
        for other in [
            parse_quote!(AuthUser),
            parse_quote!(State<Json>),
            parse_quote!(self::Params<SendMessage>),
            parse_quote!(paging::Params),
            parse_quote!(Option<AuthUser>),
            parse_quote!((Json, Json)),
        ] {
            let other: Type = other;
            assert!(!reads_body(&other), "{}", display(&other));
        }
    }

    #[test]
    fn nested_patterns_bind_their_names() {
        let signature: Signature = parse_quote! {
            async fn send(State(App { name, pool: Pool(ref pool), .. }): State<App>, mut whole @ Query(part): Query<Q>)
        };
        let mut mistakes = Mistakes::default();
        let arguments = read(&signature, &mut mistakes);
        assert!(mistakes.is_empty());
        let names = |index: usize| arguments[index].names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(0), ["name", "pool"]);
        assert_eq!(names(1), ["whole", "part"]);
        assert_eq!(arguments[0].reads, Reads::Headers);
        assert_eq!(arguments[1].reads, Reads::Unknown);
    }
}
