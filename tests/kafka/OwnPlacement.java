package org.fleetgauge.tests;

import java.util.Map;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/** As a managed cluster may have it: it places replicas itself, two of each partition. */
public class OwnPlacement implements CreateTopicPolicy {
    @Override
    public void validate(RequestMetadata topic) {
        if (topic.replicasAssignments() != null) {
            throw new PolicyViolationException("replicas are placed by us");
        }
        if (topic.replicationFactor() != 2) {
            throw new PolicyViolationException("there are two replicas of everything");
        }
    }

    @Override
    public void configure(Map<String, ?> settings) {}

    @Override
    public void close() {}
}
