import { Button } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import type { Machine } from "../../../../../contract/baremetal/v1/baremetal_pb.js";
import { countWords } from "../../../parts/count-words.ts";
import { useMe } from "../../../shell/me.tsx";

const RunOnMany = lazy(async () => ({ default: (await import("./run-on-many.tsx")).RunOnMany }));

/** Leads to what a plan would do to the selected machines; nothing is done by pressing it. */
export function RunOnManyButton({ machines }: { readonly machines: readonly Machine[] }) {
  const { may } = useMe();
  const [isOpen, setOpen] = useState(false);
  if (!may.has("millwright.v1.RunActionsService/StartRuns")) return null;
  return (
    <>
      <Button size="xs" onClick={() => setOpen(true)}>
        Run a plan on {countWords(machines.length, "machine")} …
      </Button>
      <Suspense fallback={null}>{isOpen && <RunOnMany machines={machines} onClose={() => setOpen(false)} />}</Suspense>
    </>
  );
}
