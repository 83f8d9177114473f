import { expect, test } from "vitest";
import { asArguments, serverSettings } from "./settings.ts";

test("a socket directory with quotes and commas stays one directory", () => {
  expect(serverSettings(`/a "b", c`).unix_socket_directories).toBe(`"/a ""b"", c"`);
});

test("a small machine gives the database less of its memory", () => {
  const buffers = (memory: number) => serverSettings("/s", memory).shared_buffers;
  expect([buffers(1024 ** 3), buffers(8 * 1024 ** 3)]).toEqual(["64MB", "256MB"]);
});

test("each setting is one pair of arguments", () => {
  expect(asArguments({ fsync: "on", listen_addresses: "" })).toEqual(["-c", "fsync=on", "-c", "listen_addresses="]);
});
