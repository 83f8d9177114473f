-- Where the installer of an ISO looks for its seed: on a second medium, on its own, or on either. Null means on a second medium; a
-- version that does not know the column makes and reads such images alone.
alter table images add column seed_on text;

alter table images add constraint images_seed_on check (seed_on in ('medium', 'image', 'either'));

-- Where the BMC is, without the path of one of its systems: machines behind one BMC share its stream of events. Null, and one that a version
-- writes that does not know the column: by itself.
alter table event_streams add column bmc text;
create index event_streams_of_bmc on event_streams (bmc) where bmc is not null;
