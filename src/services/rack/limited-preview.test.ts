import { expect, test } from "vitest";
import { limitPreviews } from "./limited-preview.ts";
import type { previewRackMaintenance, RackPreview } from "./preview.ts";

type Asked = Parameters<typeof previewRackMaintenance>;

test("four previews are under way at a time; others are told to come again, and may once one has ended or failed", async () => {
  const begun: { end: () => void; fail: (error: Error) => void }[] = [];
  const limited = limitPreviews(
    () => new Promise((resolve, fail) => begun.push({ end: () => resolve({} as RackPreview), fail })),
  );
  const asked = [{}, {}, {}] as unknown as Asked;
  const ask = () => limited(...asked);
  const [first, second] = [ask(), ask(), ask(), ask()];
  const tooMany = "4 previews of maintenance are under way on this server: ask again in a few seconds";
  await expect(ask()).rejects.toMatchObject({ kind: "exhausted", message: tooMany });
  expect(begun).toHaveLength(4);
  begun[0]?.end();
  await first;
  begun[1]?.fail(new Error("no such rack"));
  await expect(second).rejects.toThrow("no such rack");
  void ask();
  void ask();
  expect(begun).toHaveLength(6);
  await expect(ask()).rejects.toMatchObject({ kind: "exhausted" });
});
