//! The effect of faults on leadership, on a real kube-apiserver, measured at a register.
//!
//! ```text
//!   candidate ──┬── API requests ──> ProxyPort (faults) ──> kube-apiserver <── ProxyPort (faults) ── elector
//!     leads     │                                            ^
//!               │                                            └── a stranger: the test
//!               └── an operation every 50 ms ──> Register, which notes the time, the client and the token
//! ```
//!
//! A [`FaultCase`] is one [`FaultScenario`] and one [`TestSubject`]: our candidates, obedient or not, unmodified client-go elected by
//! Elector or by itself, or a single process without any election. Every result is read from the log of the
//! [`Register`] by an [`Analysis`]; what the processes believe of themselves does not count. Beside that, every
//! revision of the Lease is held against the rules, as `elector verify` does it.
//!
//! Operations go to the register directly, so that a process that is cut off from the API server can still do harm.
//! Through the proxy, HTTP/2 is spoken with those that can (client-go), HTTP/1.1 with the others; the credentials of
//! each pass through as they are.

mod analysis;
mod args;
mod case;
mod case_result;
mod case_run;
mod comparison;
mod fault;
mod fault_catalogue;
mod forward;
mod keys;
mod last_operation;
mod lease_edit;
mod lease_history;
mod matrix;
mod matrix_bed;
mod network;
mod proxy;
mod recorded_runs;
mod register;
mod register_client;
mod run_case;
mod server_fault;
mod subject;
mod table;
mod upstream;
mod wire;

pub use analysis::{AT_WORK, Analysis, Order};
pub use args::MatrixArgs;
pub use case::FaultCase;
pub use case_result::CaseResult;
pub use comparison::comparison_table;
pub use fault::FaultScenario;
pub use fault_catalogue::FAULTS;
pub use forward::Traffic;
pub use last_operation::LastOperation;
pub use matrix::{MatrixResults, run_matrix};
pub use network::NetworkCondition;
pub use proxy::{Proxy, ProxyPort};
pub use recorded_runs::RecordedRuns;
pub use register::{GuardedOperation, OperationLog, Register};
pub use register_client::RegisterClient;
pub use subject::{Binaries, TestSubject};
pub use table::{record, subject_table, summary_table, table};
