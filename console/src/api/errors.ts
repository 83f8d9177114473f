import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../../contract/millwright/v1/error_info_pb.js";

/** What went wrong, for people, with what the server says helps. */
export interface ShownError {
  readonly message: string;
  /** Empty where the server knows nothing that helps. */
  readonly next: string;
  /** The field of the request that is wrong; empty where none is. */
  readonly field: string;
}

/** The server's own words, wherever it has any. */
export function shownError(error: unknown): ShownError {
  const answer = ConnectError.from(error);
  const [info] = answer.findDetails(ErrorInfoSchema);
  const isOurs = error instanceof ConnectError && answer.rawMessage !== "";
  return {
    message: isOurs && !isUnreachable(answer) ? answer.rawMessage : "the server cannot be reached",
    next: info?.next ?? "",
    field: info?.field ?? "",
  };
}

/** Browsers say no more of it than that a fetch has failed. */
const isUnreachable = ({ code, cause }: ConnectError): boolean => code === Code.Unknown || cause instanceof TypeError;

/** Asking again cannot help: the request itself is wrong, or not allowed. */
export const isFinal = (error: unknown): boolean => FINAL.has(ConnectError.from(error).code);

const FINAL: ReadonlySet<Code> = new Set([
  Code.InvalidArgument,
  Code.NotFound,
  Code.PermissionDenied,
  Code.Unauthenticated,
  Code.FailedPrecondition,
  Code.Unimplemented,
  Code.OutOfRange,
]);
