"""The broker: decides which tasks are due, hands them out, and reports products."""
