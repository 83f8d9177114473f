import { expect, test } from "vitest";
import { cliVocabulary } from "../../scripts/generate/cli-vocabulary.ts";
import { runAgainst } from "../../test/support/cli/fake-terminal.ts";
import { describeCommands } from "./describe.ts";
import { SERVER_VOCABULARY } from "./generated/server-vocabulary.ts";

const run = (line: string) => runAgainst(() => {}, line);

test("--version prints the version", async () => {
  expect(await run("--version")).toEqual({ code: 0, out: "1.2.3\n", err: "" });
});

test("help goes to the output and names the commands, with examples", async () => {
  const { code, out } = await run("--help");
  expect(code).toBe(0);
  for (const { name } of describeCommands().commands) expect(out).toContain(name);
  expect(out).toContain("millwright power-shelf maintenance power-off --power-shelf-id ID1 ID2");
});

test.each([
  ["pwer-shelf", "(Did you mean power-shelf?)"],
  ["ps lst", "(Did you mean list?)"],
  ["ps list --rak r", "(Did you mean --rack?)"],
  ["ps list -o xml", "Allowed choices are table, json, yaml, csv"],
  ["ps list surplus", "too many arguments"],
  ["ps history", "missing required argument 'id|name'"],
  ["ps", "Usage: millwright power-shelf|ps"],
  ["--output json dev", "dev comes first"],
])("%s ends with 2 and says what was meant", async (line, message) => {
  const { code, err, out } = await run(line);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(message);
});

test.each([
  ["serve --help", ["--http-listen", "MILLWRIGHT_HTTP_LISTEN", "--config <file>"]],
  ["dev --help", ["--fault", "By default: 20."]],
  ["sim --help", ["--sim-speed", "--fault"]],
  ["config check --help", ["--profile", "--tls-key-file <file>"]],
])("%s lists its settings", async (line, parts) => {
  const { code, out } = await run(line);
  expect(code).toBe(0);
  for (const part of parts) expect(out).toContain(part);
});

test("what was generated for help and completion is what the server's tables hold", () => {
  expect(SERVER_VOCABULARY).toEqual(cliVocabulary());
});

test("token create lists the roles, and refuses others", async () => {
  expect((await run("token create --help")).out).toMatch(/"admin",\s+"operator",\s+"viewer"/);
  expect((await run("token create x --role boss")).err).toContain("Allowed choices are admin, operator");
});

test("options for all commands may stand before or after the command", async () => {
  expect((await run("-o json ps hr print-empty-template")).out).toBe(
    (await run("ps hr print-empty-template -o json")).out,
  );
});
