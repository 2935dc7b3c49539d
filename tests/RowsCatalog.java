import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.V1Scan;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsOverwrite;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog in memory whose tables replace the rows of a condition, as Spark asks of Delta and Iceberg. */
public class RowsCatalog implements TableCatalog {
  private final Map<Identifier, RowsTable> tables = new ConcurrentHashMap<>();
  private String name;

  public void initialize(String name, CaseInsensitiveStringMap options) { this.name = name; }
  public String name() { return name; }
  public Identifier[] listTables(String[] namespace) { return tables.keySet().toArray(new Identifier[0]); }
  public boolean dropTable(Identifier at) { return tables.remove(at) != null; }
  public Table alterTable(Identifier at, TableChange... changes) { throw new UnsupportedOperationException(); }

  public Table loadTable(Identifier at) throws NoSuchTableException {
    if (!tables.containsKey(at)) throw new NoSuchTableException(at);
    return tables.get(at);
  }

  public Table createTable(Identifier at, StructType schema, Transform[] partitions, Map<String, String> properties) {
    return tables.computeIfAbsent(at, one -> new RowsTable(one.toString(), schema, partitions, properties));
  }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException {
    if (from.namespace()[0].equals("fixed")) throw new UnsupportedOperationException("tables keep their names");
    if (!Arrays.equals(from.namespace(), to.namespace())) throw new NoSuchTableException(to);
    tables.put(to, tables.remove(from));
  }

  static class RowsTable implements SupportsRead, SupportsWrite {
    final String name; final StructType schema; final Transform[] partitions; final Map<String, String> properties;
    final List<Row> rows = new ArrayList<>();

    RowsTable(String name, StructType schema, Transform[] partitions, Map<String, String> properties) {
      this.name = name; this.schema = schema; this.partitions = partitions; this.properties = properties;
    }

    public String name() { return name; }
    public StructType schema() { return schema; }
    /** Iceberg, where nothing else is asked for: a format whose tables replace rows just as these do. */
    public Map<String, String> properties() {
      return Map.of("provider", properties.getOrDefault("provider", "iceberg"));
    }
    public Transform[] partitioning() { return partitions; }
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ, TableCapability.V1_BATCH_WRITE, TableCapability.OVERWRITE_BY_FILTER,
          TableCapability.TRUNCATE);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return () -> new RowsScan(this); }
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return new RowsWriter(this); }
  }

  static class RowsScan implements V1Scan {
    final RowsTable table;
    RowsScan(RowsTable table) { this.table = table; }
    public StructType readSchema() { return table.schema; }

    @SuppressWarnings("unchecked")
    public <T extends BaseRelation & TableScan> T toV1TableScan(SQLContext context) {
      return (T) new RowsRelation(table, context);
    }
  }

  static class RowsRelation extends BaseRelation implements TableScan {
    final RowsTable table; final SQLContext context;
    RowsRelation(RowsTable table, SQLContext context) { this.table = table; this.context = context; }
    public SQLContext sqlContext() { return context; }
    public StructType schema() { return table.schema; }
    public RDD<Row> buildScan() {
      return new JavaSparkContext(context.sparkContext()).parallelize(new ArrayList<>(table.rows)).rdd();
    }
  }

  static class RowsWriter implements WriteBuilder, SupportsOverwrite {
    final RowsTable table; Filter[] replaced = null;
    RowsWriter(RowsTable table) { this.table = table; }
    public WriteBuilder overwrite(Filter[] filters) { replaced = filters; return this; }
    public WriteBuilder truncate() { replaced = new Filter[0]; return this; }
    boolean goes(Row row) {
      for (Filter one : replaced)
        if (one instanceof EqualTo) {
          EqualTo equal = (EqualTo) one;
          if (!Objects.equals(String.valueOf(row.<Object>getAs(equal.attribute())), String.valueOf(equal.value()))) return false;
        }
      return true;
    }
    public Write build() {
      return new V1Write() {
        public InsertableRelation toInsertableRelation() {
          return (data, overwrite) -> {
            List<Row> added = data.collectAsList();
            if (replaced != null) table.rows.removeIf(RowsWriter.this::goes);
            table.rows.addAll(added);
          };
        }
      };
    }
  }
}
