import { create, type DescField, type MessageInitShape, ScalarType } from "@bufbuild/protobuf";
import { type Plan, type PlanSchema, type Step, StepSchema } from "../../../../contract/baremetal/v1/baremetal_pb.js";

/** A plan while somebody writes it: as the fields of a form have it. */
export interface PlanDraft {
  readonly planId: string;
  readonly displayName: string;
  readonly steps: readonly StepDraft[];
}

export interface StepDraft {
  /** Tells the rows of the form apart while they are moved. */
  readonly key: number;
  readonly name: string;
  /** A kind of the contract, such as reboot. */
  readonly kind: string;
  /** Empty: the default of the kind. */
  readonly timeoutSeconds: string;
  readonly maxRetries: string;
  readonly values: Readonly<Record<string, string | boolean>>;
}

/** A field of a kind of step: a text, a yes or no, or names with values, one on each line. */
export interface KindField {
  readonly name: string;
  readonly label: string;
  readonly type: "text" | "flag" | "pairs";
}

const KINDS = StepSchema.oneofs[0]?.fields ?? [];

export const KIND_NAMES: readonly string[] = KINDS.map(({ localName }) => localName);

/** What a kind of step takes, as the contract has it. */
export function fieldsOfKind(kind: string): readonly KindField[] {
  const fields = KINDS.find(({ localName }) => localName === kind)?.message?.fields ?? [];
  return fields.flatMap((field) => {
    const type = typeOf(field);
    // `image` is the same as `image_ref`.
    return type === undefined || field.name === "image" ? [] : [{ name: field.localName, label: labelOf(field), type }];
  });
}

function typeOf(field: DescField): KindField["type"] | undefined {
  if (field.fieldKind === "map") return "pairs";
  if (field.fieldKind !== "scalar") return undefined;
  return field.scalar === ScalarType.BOOL ? "flag" : "text";
}

const labelOf = ({ name }: DescField): string => {
  const words = name.replace(/_ref$/, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};

let lastKey = 0;
const newKey = (): number => {
  lastKey += 1;
  return lastKey;
};

export const emptyStep = (kind = KIND_NAMES[0] ?? ""): StepDraft => ({
  ...{ key: newKey(), name: "", kind, timeoutSeconds: "", maxRetries: "", values: {} },
});

/** Another plan as the beginning of a new one. */
export function draftOf({ planId, displayName, steps }: Plan): PlanDraft {
  return { planId: `${planId}-2`, displayName, steps: steps.map(draftOfStep) };
}

function draftOfStep({ name, timeoutSeconds, maxRetries, kind }: Step): StepDraft {
  const given = (kind.value ?? {}) as Readonly<Record<string, unknown>>;
  const values = fieldsOfKind(kind.case ?? "").map(({ name: field, type }) => {
    const value = given[field];
    if (type === "pairs") return [field, textOfPairs(value as Readonly<Record<string, string>>)] as const;
    return [field, type === "flag" ? value === true : String(value ?? "")] as const;
  });
  return {
    ...{ key: newKey(), name, kind: kind.case ?? "", timeoutSeconds: String(timeoutSeconds || "") },
    maxRetries: String(maxRetries ?? ""),
    values: Object.fromEntries(values),
  };
}

const textOfPairs = (pairs: Readonly<Record<string, string>> = {}): string =>
  Object.entries(pairs)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");

/** As the API takes it. What is wrong with it the server says. */
export function planOf({ planId, displayName, steps }: PlanDraft): MessageInitShape<typeof PlanSchema> {
  return {
    planId: planId.trim(),
    displayName: displayName.trim(),
    steps: steps.map(({ name, kind, timeoutSeconds, maxRetries, values }) =>
      create(StepSchema, {
        name: name.trim(),
        timeoutSeconds: Number(timeoutSeconds) || 0,
        ...(maxRetries !== "" && { maxRetries: Number(maxRetries) || 0 }),
        kind: { case: kind, value: payloadOf(kind, values) } as Step["kind"],
      }),
    ),
  };
}

/** Without what another kind, which was chosen before, was given. */
const payloadOf = (kind: string, values: StepDraft["values"]): object =>
  Object.fromEntries(
    fieldsOfKind(kind).flatMap(({ name, type }) => {
      const value = values[name];
      if (value === undefined || value === "") return [];
      return [[name, type === "pairs" ? pairsOf(String(value)) : value]];
    }),
  );

const pairsOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => {
        const at = line.indexOf("=");
        return at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 1)];
      }),
  );

/** A step one place up or down. */
export function moved(steps: readonly StepDraft[], from: number, to: number): readonly StepDraft[] {
  const step = steps[from];
  if (step === undefined || to < 0 || to >= steps.length) return steps;
  return steps.toSpliced(from, 1).toSpliced(to, 0, step);
}

/** The step of which a refusal of the server speaks; -1: of none. */
export const stepOfField = (field: string): number => Number(/steps\[(\d+)\]/.exec(field)?.[1] ?? -1);
