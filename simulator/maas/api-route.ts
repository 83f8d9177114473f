import type { Form } from "./form.ts";
import type { Region } from "./region.ts";

export interface ApiCall {
  readonly region: Region;
  /** The open parts of the path, in their order. */
  readonly names: readonly string[];
  readonly query: Form;
  readonly form: Form;
}

/** JSON, unless it is text. */
export interface ApiReply {
  readonly status: number;
  readonly body?: unknown;
  readonly text?: string;
}

export interface ApiRoute {
  readonly method: string;
  /** Below `/MAAS/api/2.0/`. */
  readonly path: RegExp;
  /** Null: the call without `op`. */
  readonly op: string | null;
  readonly isAnonymous?: boolean;
  readonly handle: (call: ApiCall) => ApiReply;
}

export const ok = (body: unknown): ApiReply => ({ status: 200, body });
