import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.solr.client.solrj.embedded.JettyConfig;
import org.apache.solr.client.solrj.embedded.JettySolrRunner;

/** A Solr node on loopback: `SolrNode.java HOME`; prints its port, and stops when its standard input ends. */
public class SolrNode {
  public static void main(String[] args) throws Exception {
    JettyConfig config = JettyConfig.builder().setContext("/solr").setPort(0).build();
    JettySolrRunner node = new JettySolrRunner(Path.of(args[0]).toAbsolutePath().toString(), config);
    node.start();
    System.out.println("port " + node.getLocalPort());
    System.out.flush();
    while (System.in.read() >= 0) {}
    node.stop();
    System.exit(0);
  }
}
