//! `rpc_methods![]`, which knows by what name the caller calls this crate.

/// Lists annotated handlers for [`JsonRpcRouter::methods`](crate::JsonRpcRouter::methods), which mounts each under the method
/// that its annotation names.
///
/// ```
/// use idempotent::{Idempotency, JsonRpcRouter, RpcError, idempotent, rpc_methods};
///
/// #[idempotent(method = "message/send")]
/// async fn send_message() -> Result<&'static str, RpcError> {
///     Ok("sent")
/// }
///
/// #[idempotent(method = "message/stream")]
/// async fn stream_message() -> Result<&'static str, RpcError> {
///     Ok("sent")
/// }
///
/// fn router() -> JsonRpcRouter<Idempotency> {
///     JsonRpcRouter::new().methods(rpc_methods![send_message, stream_message])
/// }
/// ```
#[macro_export]
macro_rules! rpc_methods {
    ($($handlers:tt)*) => {
        $crate::__private::rpc_methods!($crate; $($handlers)*)
    };
}
