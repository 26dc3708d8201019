package org.fleetgauge.tests;

import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.security.auth.AuthenticationContext;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.KafkaPrincipalBuilder;
import org.apache.kafka.common.security.auth.KafkaPrincipalSerde;

/** Names a client after its listener: brokers are INTERNAL or CONTROLLER, all other clients are CLIENT. */
public class ListenerPrincipalBuilder implements KafkaPrincipalBuilder, KafkaPrincipalSerde {
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
