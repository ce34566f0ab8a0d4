module cohort

go 1.19
