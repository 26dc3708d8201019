package org.fleetgauge.tests;

import java.util.Map;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/** A policy as in managed clusters: the cluster assigns the replicas, two for each partition. */
public class ClusterPlacementPolicy implements CreateTopicPolicy {
    @Override
    public void validate(RequestMetadata topic) {
        if (topic.replicasAssignments() != null) {
            throw new PolicyViolationException("replicas must be assigned by the cluster");
        }
        if (topic.replicationFactor() != 2) {
            throw new PolicyViolationException("the replication factor must be 2");
        }
    }

    @Override
    public void configure(Map<String, ?> settings) {}

    @Override
    public void close() {}
}
