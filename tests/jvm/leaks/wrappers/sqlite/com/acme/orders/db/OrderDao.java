package com.acme.orders.db;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import org.shop.server.Held;
import org.shop.server.Service;

/** Prepared statements that are never closed: SQLite keeps the compiled program of each. */
public final class OrderDao implements Service {
  private static final int ORDERS = 1_500;
  private final List<PreparedStatement> open = new ArrayList<>();
  private Connection database;

  @Override
  public Held serve() throws SQLException {
    database = DriverManager.getConnection("jdbc:sqlite::memory:");
    try (Statement statement = database.createStatement()) {
      statement.executeUpdate("create table orders(id integer primary key, customer text, total integer)");
    }
    for (int order = 0; order < ORDERS; order++) find(order);
    return Held.objects(open.size());
  }

  private void find(int order) throws SQLException {
    PreparedStatement query =
        database.prepareStatement("select customer, sum(total) from orders where id > ? group by customer having sum(total) > " + order);
    open.add(query);
    query.setInt(1, order);
    query.executeQuery().close();
  }
}
