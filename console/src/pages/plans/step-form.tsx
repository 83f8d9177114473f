import { ActionIcon, Checkbox, NativeSelect, Textarea, TextInput } from "@mantine/core";
import classes from "./new-plan.module.css";
import { fieldsOfKind, KIND_NAMES, type KindField, type StepDraft } from "./plan-draft.ts";

interface StepFormProps {
  readonly step: StepDraft;
  readonly number: number;
  /** The server refuses the plan because of this step. */
  readonly isWrong: boolean;
  readonly onChange: (step: StepDraft) => void;
  readonly onMove: (by: -1 | 1) => void;
  readonly onRemove: () => void;
}

/** One step: its name, its kind, and what the kind takes. */
export function StepForm({ step, number, isWrong, onChange, onMove, onRemove }: StepFormProps) {
  const set = (change: Partial<StepDraft>) => onChange({ ...step, ...change });
  return (
    <li className={classes.step} data-wrong={isWrong || undefined} aria-label={`Step ${number}`}>
      <div className={classes.fields}>
        <TextInput
          size="xs"
          label="Name"
          required
          value={step.name}
          onChange={(event) => set({ name: event.currentTarget.value })}
        />
        <NativeSelect
          size="xs"
          label="Kind"
          data={[...KIND_NAMES]}
          value={step.kind}
          onChange={(event) => set({ kind: event.currentTarget.value })}
        />
        {fieldsOfKind(step.kind).map((field) => (
          <Field
            key={`${step.kind} ${field.name}`}
            field={field}
            value={step.values[field.name]}
            onGive={(value) => set({ values: { ...step.values, [field.name]: value } })}
          />
        ))}
        <Seconds label="Timeout (s)" value={step.timeoutSeconds} onGive={(timeoutSeconds) => set({ timeoutSeconds })} />
        <Seconds label="Retries" value={step.maxRetries} onGive={(maxRetries) => set({ maxRetries })} />
      </div>
      <div className={classes.tools}>
        <ActionIcon variant="default" aria-label={`Move step ${number} up`} onClick={() => onMove(-1)}>
          ↑
        </ActionIcon>
        <ActionIcon variant="default" aria-label={`Move step ${number} down`} onClick={() => onMove(1)}>
          ↓
        </ActionIcon>
        <ActionIcon variant="default" aria-label={`Remove step ${number}`} onClick={onRemove}>
          ×
        </ActionIcon>
      </div>
    </li>
  );
}

interface SecondsProps {
  readonly label: string;
  readonly value: string;
  readonly onGive: (value: string) => void;
}

const Seconds = ({ label, value, onGive }: SecondsProps) => (
  <TextInput
    size="xs"
    type="number"
    min={0}
    label={label}
    placeholder="as usual"
    value={value}
    onChange={(event) => onGive(event.currentTarget.value)}
  />
);

interface FieldProps {
  readonly field: KindField;
  readonly value: string | boolean | undefined;
  readonly onGive: (value: string | boolean) => void;
}

function Field({ field: { label, type }, value, onGive }: FieldProps) {
  if (type === "flag")
    return (
      <Checkbox
        size="xs"
        className={classes.flag ?? ""}
        label={label}
        checked={value === true}
        onChange={(event) => onGive(event.currentTarget.checked)}
      />
    );
  const shared = { size: "xs", label, value: String(value ?? "") } as const;
  return type === "pairs" ? (
    <Textarea
      {...shared}
      placeholder="name=value"
      title="One on each line"
      autosize
      minRows={1}
      onChange={(event) => onGive(event.currentTarget.value)}
    />
  ) : (
    <TextInput {...shared} onChange={(event) => onGive(event.currentTarget.value)} />
  );
}
