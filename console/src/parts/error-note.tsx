import { shownError } from "../api/errors.ts";
import classes from "./error-note.module.css";

/** What went wrong in the server's words, and what helps. */
export function ErrorNote({ error }: { readonly error: unknown }) {
  const { message, next } = shownError(error);
  return (
    <div role="alert" className={classes.note}>
      <span className={classes.message}>{message}</span>
      {next !== "" && <span className={classes.next}>{next}</span>}
    </div>
  );
}
