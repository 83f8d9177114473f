import { Button, Checkbox, Modal, NativeSelect, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { callMethod, newRequestId } from "../api/call-method.ts";
import { CopyAs } from "../parts/copy-as.tsx";
import { CopyButton } from "../parts/copy-button.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import type { Action, ActionResult } from "./action.ts";
import classes from "./action-dialog.module.css";
import { type AskedField, fieldsToAsk, REQUEST_ID, takesRequestId } from "./action-fields.ts";
import { Results } from "./results.tsx";

interface ActionDialogProps {
  readonly action: Action;
  readonly onClose: () => void;
}

/** Says what will be done, shows what it would do, asks for what the call takes beside, and does it once. */
export function ActionDialog({ action, onClose }: ActionDialogProps) {
  const { label, says, method, request, cli, isDangerous = false, asks, preview, leadsTo, perform } = action;
  const [given, setGiven] = useState<Readonly<Record<string, string | boolean>>>({});
  const [requestId] = useState(newRequestId);
  const navigate = useNavigate();
  const whole = { ...request, ...given };
  const resultsOf = perform ? (answer: unknown) => answer as readonly ActionResult[] : action.resultsOf;
  const doing = useMutation({
    mutationFn: async () =>
      perform
        ? perform()
        : callMethod(method, { ...whole, ...(takesRequestId(method) && { [REQUEST_ID]: requestId }) }),
    onSuccess: (answer) => {
      if (resultsOf) return;
      onClose();
      const place = leadsTo?.(answer);
      if (place !== undefined) void navigate({ href: place });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    doing.mutate();
  };
  if (resultsOf && doing.data !== undefined)
    return (
      <Modal opened onClose={onClose} title={label} size="lg">
        <Results results={resultsOf(doing.data)} onClose={onClose} />
      </Modal>
    );
  return (
    <Modal opened onClose={onClose} title={label} size="lg" returnFocus>
      <form className={classes.form} onSubmit={submit}>
        <p>{says}</p>
        {preview}
        {(asks ?? fieldsToAsk(method, request)).map((field) => (
          <Field key={field.name} field={field} onGive={(value) => setGiven({ ...given, [field.name]: value })} />
        ))}
        {doing.error !== null && <ErrorNote error={doing.error} />}
        <div className={classes.foot}>
          {perform ? <CopyButton label="copy as CLI" text={cli} /> : <CopyAs call={{ cli, method, request: whole }} />}
          <span className={classes.buttons}>
            <Button variant="default" onClick={onClose}>
              Leave it
            </Button>
            <Button
              type="submit"
              color={isDangerous ? "red" : "blue"}
              loading={doing.isPending}
              {...(!isDangerous && { "data-autofocus": true })}
            >
              {label}
            </Button>
          </span>
        </div>
      </form>
    </Modal>
  );
}

interface FieldProps {
  readonly field: AskedField;
  readonly onGive: (value: string | boolean) => void;
}

function Field({ field: { label, isFlag, choices }, onGive }: FieldProps) {
  if (isFlag) return <Checkbox label={label} onChange={(event) => onGive(event.currentTarget.checked)} />;
  if (choices)
    return <NativeSelect label={label} data={[...choices]} onChange={(event) => onGive(event.currentTarget.value)} />;
  return <TextInput label={label} onChange={(event) => onGive(event.currentTarget.value)} />;
}
