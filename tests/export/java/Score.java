import java.nio.file.*;
import java.util.*;
import org.apache.lucene.document.*;
import org.apache.lucene.expressions.*;
import org.apache.lucene.expressions.js.JavascriptCompiler;
import org.apache.lucene.index.*;
import org.apache.lucene.search.*;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Sorts documents by an expression: `Score.java EXPRESSION ROWS`; prints document and value, best first. */
public class Score {
  public static void main(String[] args) throws Exception {
    Expression expression = JavascriptCompiler.compile(Files.readString(Path.of(args[0])).trim());
    List<String> lines = Files.readAllLines(Path.of(args[1]));
    String[] names = lines.get(0).split("\t");
    ByteBuffersDirectory directory = new ByteBuffersDirectory();
    try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig())) {
      for (String line : lines.subList(1, lines.size())) {
        String[] cells = line.split("\t", -1);
        Document document = new Document();
        for (int j = 0; j < names.length; j++) {
          boolean empty = cells[j].isEmpty();
          if (!empty) document.add(new DoubleDocValuesField(names[j], Double.parseDouble(cells[j])));
          document.add(new DoubleDocValuesField(names[j] + "?", empty ? 1 : 0));
        }
        writer.addDocument(document);
      }
      writer.forceMerge(1);
    }
    SimpleBindings bindings = new SimpleBindings();
    for (String name : names) {
      bindings.add("doc['" + name + "'].value", DoubleValuesSource.fromDoubleField(name));
      bindings.add("doc['" + name + "'].empty", DoubleValuesSource.fromDoubleField(name + "?"));
    }
    try (IndexReader reader = DirectoryReader.open(directory)) {
      Sort sort = new Sort(expression.getSortField(bindings, true));
      for (ScoreDoc hit : new IndexSearcher(reader).search(new MatchAllDocsQuery(), lines.size(), sort).scoreDocs) {
        System.out.println(hit.doc + "\t" + ((FieldDoc) hit).fields[0]);
      }
    }
  }
}
