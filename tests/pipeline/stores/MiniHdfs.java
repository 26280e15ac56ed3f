// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS in one process: a name node and a data node on loopback, until the input ends. */
public final class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.setInt("dfs.replication", 1);
        settings.setInt("dfs.namenode.handler.count", 4);
        settings.setInt("dfs.datanode.handler.count", 4);
        MiniDFSCluster cluster =
            new MiniDFSCluster.Builder(settings, new File(arguments[0])).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println("ready " + cluster.getNameNode().getHttpAddress().getPort());
        while (System.in.read() >= 0) {}
        System.exit(0);
    }
}
