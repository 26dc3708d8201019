"""ACLs of a cluster with an authorizer."""

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY


def add_acl(
    bootstrap: str,
    topic: str | None,
    operation: AclOperation,
    permission: AclPermissionType = ALLOW,
    principal: str = "User:ANONYMOUS",
) -> None:
    """Create an ACL on a topic, or on the cluster if ``topic`` is None."""
    resource_type, name = (ResourceType.TOPIC, topic) if topic else (ResourceType.BROKER, "kafka-cluster")
    binding = AclBinding(
        resource_type, name, ResourcePatternType.LITERAL, principal, "*", operation, permission
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})  # the future fails once the client is deleted
    admin.create_acls([binding])[binding].result(10)
