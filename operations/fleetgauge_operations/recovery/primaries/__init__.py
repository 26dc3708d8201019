"""Services that are active in every region: which cluster is primary, and promoting another one."""
