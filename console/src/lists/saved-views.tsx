import { Button, UnstyledButton } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type SavedView, SavedViewService } from "../../../contract/millwright/v1/saved_view_pb.js";
import { clientOf } from "../api/services.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import type { ListView } from "./list-search.ts";
import classes from "./saved-views.module.css";

interface SavedViewsProps {
  readonly kind: string;
  readonly view: ListView;
  readonly onView: (view: ListView) => void;
}

const viewOf = ({ filter, orderBy, groupBy: [group = ""] }: SavedView): ListView => ({ filter, orderBy, group });

/** The views that the reader has kept. The server keeps them, so that they are there in every browser. */
export function SavedViews({ kind, view, onView }: SavedViewsProps) {
  const client = useQueryClient();
  const queryKey = [kind, "saved-views"];
  const [name, setName] = useState("");
  const { data = [], error } = useQuery({
    queryKey,
    queryFn: async ({ signal }) => (await clientOf(SavedViewService).listSavedViews({ kind }, { signal })).views,
  });
  const again = () => client.invalidateQueries({ queryKey });
  const save = useMutation({
    mutationFn: ({ group, ...rest }: ListView) =>
      clientOf(SavedViewService).saveView({
        view: { kind, name: name.trim(), ...rest, groupBy: group === "" ? [] : [group] },
      }),
    onSuccess: () => setName(""),
    onSettled: again,
  });
  const remove = useMutation({
    mutationFn: (gone: string) => clientOf(SavedViewService).deleteSavedView({ kind, name: gone }),
    onSettled: again,
  });
  const failed = error ?? save.error ?? remove.error;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(view);
  };
  return (
    <section className={classes.views} aria-label="Saved views">
      {failed !== null && <ErrorNote error={failed} />}
      {data.map((each) => (
        <span key={each.name} className={classes.view}>
          <UnstyledButton
            className={classes.name}
            aria-pressed={JSON.stringify(viewOf(each)) === JSON.stringify(view)}
            title={[each.filter, each.orderBy, ...each.groupBy].filter(Boolean).join(" · ")}
            onClick={() => onView(viewOf(each))}
          >
            {each.name}
          </UnstyledButton>
          <UnstyledButton
            className={classes.delete}
            aria-label={`Delete the view ${each.name}`}
            onClick={() => remove.mutate(each.name)}
          >
            ×
          </UnstyledButton>
        </span>
      ))}
      <form className={classes.save} onSubmit={submit}>
        <input
          className={classes.input}
          aria-label="Name of the view"
          placeholder="Keep this view as"
          maxLength={80}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Button type="submit" size="xs" variant="default" disabled={name.trim() === ""} loading={save.isPending}>
          Keep
        </Button>
      </form>
    </section>
  );
}
