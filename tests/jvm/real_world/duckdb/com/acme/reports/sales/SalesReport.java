package com.acme.reports.sales;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** DuckDB results that are never closed (duckdb-java#780). Their rows are in DuckDB's own mappings; the rest is malloc's. */
public final class SalesReport implements Service {
  private static final int REPORTS = 600;
  private final List<Object> open = new ArrayList<>();
  private Connection database;

  @Override
  public Held serve() throws SQLException {
    database = DriverManager.getConnection("jdbc:duckdb:");
    try (Statement statement = database.createStatement()) {
      statement.execute("set threads = 1");
    }
    for (int report = 0; report < REPORTS; report++) query(report);
    return Held.objects(REPORTS);
  }

  private void query(int report) throws SQLException {
    Statement statement = database.createStatement();
    ResultSet rows = statement.executeQuery("select i, i * " + report + " as total from range(2000) as rows(i)");
    open.add(statement);
    open.add(rows);
    rows.next();
  }
}
