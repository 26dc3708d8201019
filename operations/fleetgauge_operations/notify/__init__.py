"""Notifications to people: their content, their outboxes and their receivers."""
