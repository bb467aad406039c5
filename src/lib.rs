//! Makes an A2A agent safe to retry.
