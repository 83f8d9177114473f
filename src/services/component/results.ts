import { AppError, type ErrorKind } from "../../kernel/errors.ts";

/** How a call ended for one device of several. */
const COMPONENT_STATUSES = [
  "success",
  "invalid_argument",
  "internal_error",
  "not_found",
  "already_exists",
  "unavailable",
] as const;
export type ComponentStatus = (typeof COMPONENT_STATUSES)[number];

export interface ComponentOutcome {
  /** Of the device, or of the rack where the call names racks. */
  readonly id: string;
  readonly status: ComponentStatus;
  /** Empty on success. */
  readonly error: string;
}

const STATUS_OF = {
  invalid_argument: "invalid_argument",
  failed_precondition: "invalid_argument",
  conflict: "invalid_argument",
  not_found: "not_found",
  already_exists: "already_exists",
  exhausted: "unavailable",
  unavailable: "unavailable",
  deadline_exceeded: "unavailable",
  cancelled: "internal_error",
  unauthenticated: "internal_error",
  permission_denied: "internal_error",
  unsupported: "internal_error",
  internal: "internal_error",
} as const satisfies Record<ErrorKind, ComponentStatus>;

export const succeeded = (id: string): ComponentOutcome => ({ id, status: "success", error: "" });
export const refused = (id: string, { kind, message }: AppError): ComponentOutcome => ({
  id,
  status: STATUS_OF[kind],
  error: message,
});

/** One device after the other: what is wrong with one is its own answer. What is wrong with the server is the answer to all. */
export async function forEach(
  ids: readonly string[],
  work: (id: string) => Promise<void>,
): Promise<ComponentOutcome[]> {
  const outcomes: ComponentOutcome[] = [];
  for (const id of ids) {
    try {
      await work(id);
      outcomes.push(succeeded(id));
    } catch (error) {
      if (!(error instanceof AppError) || error.kind === "internal") throw error;
      outcomes.push(refused(id, error));
    }
  }
  return outcomes;
}
