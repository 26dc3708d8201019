"""What is known of mirrored offsets, and how an offset is translated to another cluster. Pure."""
