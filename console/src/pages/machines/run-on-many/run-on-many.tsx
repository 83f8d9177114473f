import { Button, Modal, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { Machine } from "../../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunActionsService } from "../../../../../contract/millwright/v1/run_pb.js";
import { callMethod, newRequestId } from "../../../api/call-method.ts";
import { CopyAs, shellWord } from "../../../parts/copy-as.tsx";
import { countWords } from "../../../parts/count-words.ts";
import { ErrorNote } from "../../../parts/error-note.tsx";
import { PlanSelect } from "../../machine/start-run/plan-select.tsx";
import { pathOfThing } from "../../thing-path.ts";
import { Radius } from "../radius.tsx";
import { ManyPreview } from "./many-preview.tsx";
import classes from "./run-on-many.module.css";

interface RunOnManyProps {
  /** As they were when they were selected. */
  readonly machines: readonly Machine[];
  readonly onClose: () => void;
}

/** Starts a plan on the very machines that were selected, after it has shown what that reaches. Its page shows what comes of each. */
export function RunOnMany({ machines, onClose }: RunOnManyProps) {
  const [planId, setPlanId] = useState("");
  const [atATime, setAtATime] = useState("5");
  const [stopAfter, setStopAfter] = useState("1");
  const [requestId] = useState(newRequestId);
  const navigate = useNavigate();
  const ids = machines.map(({ machineId }) => machineId);
  const filter = `machine_id IN (${ids.map((id) => `"${id}"`).join(", ")})`;
  const request = { requestId, filter, planId, maxParallel: Number(atATime), stopAfter: Number(stopAfter) };
  const starting = useMutation({
    mutationFn: () => callMethod(RunActionsService.method.startRuns, request),
    onSuccess: ({ run }) => {
      const to = pathOfThing("run", run?.run?.runId ?? "");
      onClose();
      if (to !== undefined) void navigate({ href: to });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (planId !== "") starting.mutate();
  };
  const cli = `millwright run start --filter ${shellWord(filter)} --plan ${shellWord(planId)} --max-parallel ${atATime} --stop-after ${stopAfter}`;
  const many = countWords(ids.length, "machine");
  return (
    <Modal opened onClose={onClose} title={`Run a plan on ${many}`} size="xl">
      <form className={classes.form} onSubmit={submit}>
        <p>
          Exactly these machines, whatever the filter admits by then. Each run is one of its own, and can be canceled by
          itself or with all others.
        </p>
        <Radius machines={machines} />
        <PlanSelect planId={planId} onChoose={setPlanId} />
        <div className={classes.numbers}>
          <Count label="At a time" value={atATime} least={1} onGive={setAtATime} />
          <Count label="Stop after so many failures (0: never)" value={stopAfter} least={0} onGive={setStopAfter} />
        </div>
        {planId !== "" && <ManyPreview machineIds={ids} planId={planId} />}
        {starting.error !== null && <ErrorNote error={starting.error} />}
        <div className={classes.foot}>
          {planId !== "" && <CopyAs call={{ cli, method: RunActionsService.method.startRuns, request }} />}
          <span className={classes.buttons}>
            <Button variant="default" onClick={onClose}>
              Leave it
            </Button>
            <Button type="submit" disabled={planId === ""} loading={starting.isPending}>
              Start on {many}
            </Button>
          </span>
        </div>
      </form>
    </Modal>
  );
}

interface CountProps {
  readonly label: string;
  readonly value: string;
  readonly least: number;
  readonly onGive: (value: string) => void;
}

const Count = ({ label, value, least, onGive }: CountProps) => (
  <TextInput
    type="number"
    label={label}
    min={least}
    max={1_000}
    required
    value={value}
    onChange={(event) => onGive(event.currentTarget.value)}
  />
);
