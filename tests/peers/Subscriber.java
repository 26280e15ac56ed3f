// SPDX-License-Identifier: Apache-2.0
// A consumer that subscribes by a pattern and tells what it is assigned, one line for each change.
//
// Arguments: bootstrap, group, protocol (classic or consumer), who matches (client or broker), and
// the pattern. It ends in order once its standard input says anything.

import java.time.Duration;
import java.util.Collection;
import java.util.Properties;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Subscriber {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("group.protocol", arguments[2]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("metadata.max.age.ms", "500"); // how soon the client sees new topics
        if (arguments[2].equals("classic")) {
            settings.put("heartbeat.interval.ms", "300");
        }
        TreeSet<String> assigned = new TreeSet<>();
        ConsumerRebalanceListener tells = new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                partitions.forEach(one -> assigned.add(one.toString()));
                System.out.println("assigned " + String.join(" ", assigned) + ".");
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                partitions.forEach(one -> assigned.remove(one.toString()));
            }
        };
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
            if (arguments[3].equals("broker")) {
                consumer.subscribe(new SubscriptionPattern(arguments[4]), tells);
            } else {
                consumer.subscribe(Pattern.compile(arguments[4]), tells);
            }
            while (System.in.available() == 0) {
                consumer.poll(Duration.ofMillis(100)).forEach(one ->
                    System.out.println("record " + one.topic() + " " + one.value() + "."));
                consumer.commitSync();
            }
        }
        System.out.println("closed");
    }
}
