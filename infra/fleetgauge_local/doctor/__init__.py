"""What this machine has of what the demo needs: looked at, judged, said."""
