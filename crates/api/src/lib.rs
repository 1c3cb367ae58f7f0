//! Wire types of coordinated leader election, their validation and their conversion to protocol types.
