import { Button, Modal } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { RunService } from "../../../../../contract/baremetal/v1/baremetal_pb.js";
import { callMethod, newRequestId } from "../../../api/call-method.ts";
import { CopyAs, shellWord } from "../../../parts/copy-as.tsx";
import { ErrorNote } from "../../../parts/error-note.tsx";
import { PlanSelect } from "./plan-select.tsx";
import { Preview } from "./preview.tsx";
import classes from "./start-run.module.css";

interface StartRunProps {
  readonly machineId: string;
  /** Chosen already. */
  readonly planId?: string;
  readonly onClose: () => void;
}

/** Chooses a plan, shows what it would do to the machine as things are now, and starts it. */
export function StartRun({ machineId, planId: chosen = "", onClose }: StartRunProps) {
  const [planId, setPlanId] = useState(chosen);
  const [requestId] = useState(newRequestId);
  const navigate = useNavigate();
  const request = { machineId, planId, requestId };
  const starting = useMutation({
    mutationFn: () => callMethod(RunService.method.startRun, request),
    onSuccess: ({ runId }) => {
      onClose();
      void navigate({ href: `/runs/${encodeURIComponent(runId)}` });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (planId !== "") starting.mutate();
  };
  const cli = `millwright run start --machine ${shellWord(machineId)} --plan ${shellWord(planId)}`;
  return (
    <Modal opened onClose={onClose} title={`Run a plan on ${machineId}`} size="xl">
      <form className={classes.form} onSubmit={submit}>
        <PlanSelect planId={planId} onChoose={setPlanId} />
        {planId !== "" && <Preview machineId={machineId} planId={planId} />}
        {starting.error !== null && <ErrorNote error={starting.error} />}
        <div className={classes.foot}>
          {planId !== "" && <CopyAs call={{ cli, method: RunService.method.startRun, request }} />}
          <span className={classes.buttons}>
            <Button variant="default" onClick={onClose}>
              Leave it
            </Button>
            <Button type="submit" disabled={planId === ""} loading={starting.isPending}>
              Start the run
            </Button>
          </span>
        </div>
      </form>
    </Modal>
  );
}
