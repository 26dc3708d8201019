package org.fleetgauge.tests;

import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.security.auth.AuthenticationContext;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.KafkaPrincipalBuilder;
import org.apache.kafka.common.security.auth.KafkaPrincipalSerde;

/** Who comes through a listener is called like it: brokers INTERNAL or CONTROLLER, everybody else CLIENT. */
public class ByListener implements KafkaPrincipalBuilder, KafkaPrincipalSerde {
    @Override
    public KafkaPrincipal build(AuthenticationContext context) {
        return new KafkaPrincipal(KafkaPrincipal.USER_TYPE, context.listenerName());
    }

    @Override
    public byte[] serialize(KafkaPrincipal principal) {
        return principal.getName().getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public KafkaPrincipal deserialize(byte[] bytes) {
        return new KafkaPrincipal(KafkaPrincipal.USER_TYPE, new String(bytes, StandardCharsets.UTF_8));
    }
}
