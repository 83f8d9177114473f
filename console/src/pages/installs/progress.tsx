import { Meter } from "../../parts/blocks.tsx";

/** How far an install is, by its installer's own word. */
export const Progress = ({ percent }: { readonly percent: number }) => (
  <>
    <Meter part={percent} whole={100} label={`${percent} %`} /> {percent} %
  </>
);
