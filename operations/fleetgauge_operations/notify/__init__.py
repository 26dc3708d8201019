"""Notifications to people: what they say, and the receivers that take them."""
