//! JSON-RPC 2.0 over HTTP, as A2A uses it: requests, typed parameters and results, and the router of methods.

pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod error;
mod handler;
pub(crate) mod json_text;
mod params;
mod rejection;
pub(crate) mod reply;
mod router;
pub(crate) mod stream;

pub use error::RpcError;
pub use handler::RpcHandler;
pub use params::Params;
pub use rejection::RpcRejection;
pub use reply::{
    IntoRpcResponse, Reply, ViaAxum, ViaResponseResult, ViaResult, ViaResultWithHeaders, ViaSseResult, ViaStream,
    ViaStreamResult,
};
#[doc(hidden)]
pub use router::rpc_method;
pub use router::{AnnotatedHandler, IncomingCall, JsonRpcRouter, RpcMethod};
pub use stream::RpcStream;

/// The result of a JSON-RPC method.
pub type RpcResult<T> = Result<T, RpcError>;
