"""The audit report: what was found is collected once, stored, and shown on one page that needs nothing else."""

from fairpass.report.collect import collect
from fairpass.report.evidence import Evidence, find_evidence
from fairpass.report.page import write_report

__all__ = ["Evidence", "collect", "find_evidence", "write_report"]
