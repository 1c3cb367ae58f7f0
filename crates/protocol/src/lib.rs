//! Every decision of Elector, sans-IO: records, versions, strategies, the elector's and the candidate's steps.
