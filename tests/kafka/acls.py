"""Access rules of a cluster with an authorizer."""

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY


def rule(
    bootstrap: str,
    topic: str | None,
    operation: AclOperation,
    permission: AclPermissionType = ALLOW,
    principal: str = "User:ANONYMOUS",
) -> None:
    """On a topic, or on the cluster itself where that is None."""
    kind, name = (ResourceType.TOPIC, topic) if topic else (ResourceType.BROKER, "kafka-cluster")
    binding = AclBinding(kind, name, ResourcePatternType.LITERAL, principal, "*", operation, permission)
    admin = AdminClient({"bootstrap.servers": bootstrap})  # must outlive the answer
    admin.create_acls([binding])[binding].result(10)
