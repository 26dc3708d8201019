"""Receivers of notifications: where each kind takes a POST, and in which form."""

from fleetgauge_operations.notify.receivers.receiver import Receiver, name_receivers, receiver_key

__all__ = ["Receiver", "name_receivers", "receiver_key"]
