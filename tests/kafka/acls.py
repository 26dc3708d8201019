"""ACLs of a cluster with an authorizer."""

from typing import NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
_ANY_HOST = "*"


class AclRight(NamedTuple):
    """An operation on a topic or a consumer group, or on the cluster without either."""

    operation: AclOperation
    topic: str | None = None
    group: str | None = None
    is_prefix: bool = False

    @property
    def resource(self) -> tuple[ResourceType, str, ResourcePatternType]:
        """The resource's type, its name and how the name matches."""
        pattern = ResourcePatternType.PREFIXED if self.is_prefix else ResourcePatternType.LITERAL
        if self.group:
            return ResourceType.GROUP, self.group, pattern
        return (
            (ResourceType.TOPIC, self.topic, pattern)
            if self.topic
            else (
                ResourceType.BROKER,
                "kafka-cluster",
                pattern,
            )
        )


def add_acl(
    bootstrap: str,
    topic: str | None,
    operation: AclOperation,
    permission: AclPermissionType = ALLOW,
    principal: str = "User:ANONYMOUS",
) -> None:
    """Create an ACL on a topic, or on the cluster if ``topic`` is None."""
    add_right(bootstrap, AclRight(operation, topic), principal, permission)


def add_right(bootstrap: str, right: AclRight, principal: str, permission: AclPermissionType = ALLOW) -> None:
    """Create an ACL."""
    binding = AclBinding(*right.resource, principal, _ANY_HOST, right.operation, permission)
    admin = AdminClient({"bootstrap.servers": bootstrap})  # the future fails once the client is deleted
    admin.create_acls([binding])[binding].result(10)


def remove_all_rights(bootstrap: str, principal: str) -> None:
    """Delete all ACLs of a principal."""
    match = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        principal,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_acls([match])[match].result(10)


def remove_right(bootstrap: str, right: AclRight, principal: str) -> None:
    """Delete an ACL that exists."""
    match = AclBindingFilter(*right.resource, principal, _ANY_HOST, right.operation, ALLOW)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    assert len(admin.delete_acls([match])[match].result(10)) == 1
