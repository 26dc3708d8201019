"""Services that are active in every region: who is their primary, by their own store, and another one."""
