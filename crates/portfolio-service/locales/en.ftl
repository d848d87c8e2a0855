start = Start
projects = Projects
contests = Contests
people = People
groups = Groups
