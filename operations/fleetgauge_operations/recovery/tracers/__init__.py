"""Records of our own that go through mirrors: how long that takes, and whether any comes back."""
