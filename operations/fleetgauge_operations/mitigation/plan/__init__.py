"""Plans, limits and the policy of mitigation as pure functions of a snapshot."""
