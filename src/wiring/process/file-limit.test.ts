import { expect, test } from "vitest";
import { loadConfig } from "../../config.ts";
import { silentLog } from "../../kernel/log.ts";
import { checkFileLimit } from "./file-limit.ts";

test("a limit below what the settings allow is told with both numbers, and one that is enough is not", () => {
  const env = { MILLWRIGHT_ENGINE_CONCURRENCY: "100", MILLWRIGHT_LIMITS_CONNECTIONS: "1000" };
  const { config } = loadConfig({ env, argv: [] });
  const told: object[] = [];
  const log = { ...silentLog, warn: (fields: object) => void told.push(fields) };
  checkFileLimit(config, log, 1_719);
  checkFileLimit(config, log, 1_720);
  expect(told).toEqual([{ limit: 1_719, wanted: 1_720, "engine.concurrency": 100, "limits.connections": 1_000 }]);
});
