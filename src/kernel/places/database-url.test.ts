import { describe, expect, test } from "vitest";
import { parseDatabaseUrl } from "./database-url.ts";

describe("a database URL", () => {
  test.each([
    "postgresql://millwright@db.example/millwright",
    "postgres://millwright:s%40crt@db.example:5433/millwright?sslmode=verify-full",
    "postgresql://millwright@/millwright?host=%2Frun%2Fpostgresql",
    "postgresql://[::1]:5433/millwright",
  ])("%s of one host is left as it is", (url) => {
    expect(parseDatabaseUrl(url)).toEqual({ url, hosts: [] });
  });

  test("of several hosts names them, each with its port", () => {
    expect(
      parseDatabaseUrl(
        "postgresql://u:p@one,two:5433,[2001:db8::1]:5434/m?sslmode=require&target_session_attrs=read-write",
      ),
    ).toEqual({
      url: "postgresql://u:p@localhost/m?sslmode=require",
      hosts: [
        { host: "one", port: 5432 },
        { host: "two", port: 5433 },
        { host: "2001:db8::1", port: 5434 },
      ],
    });
  });

  test.each([
    ["port=5433", [5433, 5433]],
    ["port=5433,5434", [5433, 5434]],
    ["", [5432, 5432]],
  ])("may name them in its query, with %j", (port, ports) => {
    expect(parseDatabaseUrl(`postgresql://u@/m?host=/run/a,/run/b&${port}`)).toEqual({
      url: "postgresql://u@localhost/m",
      hosts: ports.map((number, at) => ({ host: ["/run/a", "/run/b"][at], port: number })),
    });
  });

  test("of one host that must be the primary is looked at before it is used", () => {
    expect(parseDatabaseUrl("postgresql://u@vip:5433/m?target_session_attrs=primary")).toEqual({
      url: "postgresql://u@vip:5433/m",
      hosts: [{ host: "vip", port: 5433 }],
    });
  });

  test.each([
    "mysql://db/m",
    "postgresql://one,two/m?target_session_attrs=standby",
    "postgresql://one,two:port/m",
    "postgresql://one,/m",
    "postgresql://one:0/m",
    "db.example",
  ])("%s is none", (url) => {
    expect(parseDatabaseUrl(url)).toBeUndefined();
  });
});
