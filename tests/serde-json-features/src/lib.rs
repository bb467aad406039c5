//! Nothing of its own: `cargo test` here runs the suite of the request hash in a build where serde_json has
//! `arbitrary_precision`, `preserve_order`, `raw_value` and `unbounded_depth` turned on, as any other crate of an agent's build
//! may do.

#[cfg(test)]
mod tests {
    /// Without this the suite would prove nothing here.
    #[test]
    fn the_features_are_on() {
        let value: serde_json::Value = serde_json::from_str(r#"{"b":1.50,"a":2}"#).expect("JSON");
        assert_eq!(value.to_string(), r#"{"b":1.50,"a":2}"#, "arbitrary_precision and preserve_order");
        let replaced: serde_json::Value =
            serde_json::from_str(r#"{"$serde_json::private::RawValue":"[]"}"#).expect("JSON");
        assert!(replaced.is_array(), "raw_value");
    }
}
