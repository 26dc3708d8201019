"""Receivers of notifications: the URL and the request body of each kind."""

from fleetgauge_operations.notify.receivers.receiver import Receiver, name_hosts, name_receivers, receiver_key

__all__ = ["Receiver", "name_hosts", "name_receivers", "receiver_key"]
