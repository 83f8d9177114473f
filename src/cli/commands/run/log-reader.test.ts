import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { createFakeTerminal } from "../../../../test/support/cli/fake-terminal.ts";
import { runCli } from "../../run-cli.ts";

/** Follows a log of a server that cuts its first caller off without a word, after so many seconds, and answers the next. */
async function followThrough(secondsUntilCut: number) {
  let now = 0;
  let calls = 0;
  const answer = connectNodeAdapter({
    routes: (router) =>
      router.service(RunService, {
        async *streamRunLogs() {
          yield { chunk: { seq: 1n, stream: "stdout", data: Buffer.from("step boot begins\n") } };
        },
      }),
  });
  const server = createServer((request, response) => {
    calls += 1;
    if (calls > 1) return answer(request, response);
    now += secondsUntilCut * 1_000;
    request.socket.resetAndDestroy();
  });
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const terminal = { ...createFakeTerminal(), now: () => new Date(now) };
  const args = ["--server", url, "--token", "tok", "run", "logs", "run-2", "--follow"];
  const code = await runCli(args, { version: "1.2.3", terminal });
  return { code, calls, out: terminal.out(), err: terminal.err() };
}

test("a server that ends before a waiting run has said anything is called again, like any that was heard", async () => {
  const { code, out, err } = await followThrough(30);
  expect({ code, out }, err).toEqual({ code: 0, out: "step boot begins\n" });
  expect(err).toContain("connection lost");
});

test("what cuts its caller off at once is no server of ours, and is told as such", async () => {
  const { code, calls, err } = await followThrough(0);
  expect({ code, calls }, err).toEqual({ code: 6, calls: 1 });
  expect(err).toContain("cannot reach the server");
});
